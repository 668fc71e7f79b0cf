"""A center's side: where its data come from, what it answers, and the one door that answers leave by."""
