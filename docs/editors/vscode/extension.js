// Starts `i lsp` for files *.i; docs/editors.md says how this folder is installed.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const command = workspace.getConfiguration("ilang").get("command");
  const server = { command, args: ["lsp"] };
  client = new LanguageClient("ilang", "ilang", server, { documentSelector: [{ language: "ilang" }] });
  return client.start();
};

exports.deactivate = () => client && client.stop();
