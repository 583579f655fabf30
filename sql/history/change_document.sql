-- The index key of a document id: the first 16 bytes of the SHA-256 of its UTF-8. It is stable, like what it calls, so
-- that PostgreSQL inlines it instead of calling it for each row.
create function change_document(entity_id text) returns uuid language sql stable parallel safe as
  $$ select encode(substring(sha256(convert_to(entity_id, 'UTF8')) for 16), 'hex')::uuid $$;
