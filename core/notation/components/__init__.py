"""Components: expressions and names wired by combinators, or applied to named values."""
