"""Tables that an SQL engine reads: both passes as queries, and the engines."""
