-- What stands for a document id in an index: the first 16 bytes of the SHA-256 of its UTF-8. It is stable, as what it
-- calls is: PostgreSQL puts it in place of the call then, and calls it for each row otherwise.
create function change_document(entity_id text) returns uuid language sql stable parallel safe as
  $$ select encode(substring(sha256(convert_to(entity_id, 'UTF8')) for 16), 'hex')::uuid $$;
