-- What a client may see of the change history: an array of {"query", "hide"}, the outer one first. Null: all of it.
alter table oauth_client add column restriction jsonb;
