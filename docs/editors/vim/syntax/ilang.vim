" Written by python -m ilang.icli.editors out of icli/highlight.py.
if exists("b:current_syntax")
  finish
endif
syntax case match
syntax match ilangSign ;\v\C[-+*/<>^$=!&|~@?]+;
syntax match ilangWire ;\v\C%(\S)@<!%(\>\>|\<\<|\&|\|)%(\S)@!;
syntax match ilangName ;\v\C[A-Za-z_]\w*;
syntax match ilangCall ;\v\C[A-Za-z_]\w*%(\()@=;
syntax match ilangBuiltin ;\v\C%(<|>)%(I|einsum|einx|elementwise|i)%(<|>)|%(<|>)%(abs|cos|dim|einmax|elements|erf|exp|exp2|file|fill|fma|interleave|log|log2|max|min|neg|range|recip|recip_sqrt|relu|sat01|sigmoid|sin|sqrt|square|stop_gradient|sum|tanh|track|transpose|values|where)%(<|>)%(\s*\()@=;
syntax match ilangConstant ;\v\C%(<|>)%(false|true)%(<|>);
syntax match ilangNumber ;\v\C\d+%(\.\d+)?%([eE][-+]?\d+)?;
syntax match ilangKeyword ;\v\C%(<|>)%(backprop|cd|else|for|forward|grad|if|in|not|op|params|prim|repeat|return|use|zero_grads)%(<|>);
syntax match ilangAxis ;\v\C[a-z]+%([a-z0-9.+\-*/<>^$!&|=@:,()\[\]]{0,60}\~)@=|%(\~)@<=[a-z]+%([a-z0-9_:])@!|%(\~\()@<=[a-z]+;
syntax match ilangDefinition ;\v\C%(^op |^cd )@<=[A-Za-z_]\w*|^%(%(op|cd|use)%(<|>))@![A-Za-z_]\w*%(\s*%(\([^~]*\)\s*)?\=%(\=)@!)@=;
syntax match ilangType ;\v\C%(<|>)%(bool|f32|f64|i32|i64)%(<|>);
syntax match ilangMember ;\v\C%(\.)@<=[A-Za-z_]\w*%(\w)@!%(\~)@!;
syntax match ilangText ;\v\C\"[^"\n]*\"?|%([A-Za-z0-9_'])@<!\'[^'\n]*\';
syntax match ilangComment ;\v\C\#.*;
highlight default link ilangComment Comment
highlight default link ilangText String
highlight default link ilangMember Identifier
highlight default link ilangType Type
highlight default link ilangDefinition Function
highlight default link ilangAxis Identifier
highlight default link ilangKeyword Keyword
highlight default link ilangNumber Number
highlight default link ilangConstant Boolean
highlight default link ilangBuiltin Special
highlight default link ilangCall Function
highlight default link ilangName Identifier
highlight default link ilangWire Statement
highlight default link ilangSign Operator
let b:current_syntax = "ilang"
