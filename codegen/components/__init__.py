"""Components and tensor programs: what users combine, call and ask about."""
