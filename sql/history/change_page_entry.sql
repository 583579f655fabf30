-- The parts of an entry in the text of a page, each after its separator (change_page). A text that may be null is
-- empty if it is, and begins with "=" if it may be empty too. An entry with much text comes without it: such a page is
-- read in several statements. PostgreSQL inlines the expression.
create function change_page_entry(at bigint, kind bigint, actor bigint, entity_id text, name text, schema_version text,
                                  related text, paths text, erased text, correlation_id text)
returns text language sql immutable parallel safe as $$
  select E'\x1e' || at::text || E'\x1e' || kind::text || E'\x1e' || actor::text || E'\x1e' || entity_id
    || E'\x1e' || coalesce('=' || name, '') || E'\x1e' || coalesce('=' || schema_version, '') || E'\x1e'
    || case when octet_length(paths) + coalesce(octet_length(related), 0) <= 262144
         then coalesce(related, '') || E'\x1e' || paths else E'\x1e' end
    || E'\x1e' || coalesce(erased, '') || E'\x1e' || coalesce(correlation_id, '')
$$;
