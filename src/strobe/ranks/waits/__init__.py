"""Wait states: who waited for whom, in messages and collectives."""
