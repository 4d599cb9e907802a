"""The stages of an operation in einx notation: ellipses, fused axes, nodes."""
