"""Operations in einx notation, and patterns of einops."""
