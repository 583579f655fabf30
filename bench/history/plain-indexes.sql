-- The indexes that serve plain SQL best: each ends with the order of the page, and includes what counts look at, so that a
-- count reads the index alone.
set maintenance_work_mem = '1GB';
create index plain_at on plain (tenant, at, id) include (entity, type, actor);
create index plain_type on plain (tenant, type, at, id) include (entity, actor);
create index plain_entity on plain (tenant, entity, at, id) include (type, actor);
create index plain_entity_type on plain (tenant, entity, type, at, id) include (actor);
create index plain_actor on plain (tenant, actor, at, id) include (entity, type);
create index plain_actor_id on plain (tenant, actor_id, at, id) include (entity, type);
create index plain_correlation on plain (tenant, correlation, at, id);
create index plain_ip on plain (tenant, ip, at, id);
create index plain_document on plain (tenant, entity, entity_id, at, id) include (type, actor);
create index plain_id on plain (tenant, entity_id, at, id) include (entity, type, actor);
create index plain_related on plain using gin (related jsonb_path_ops);
-- The keys of a change alone: an index on the jsonb itself would have all values too, and know keys of no level.
create function plain_keys(paths jsonb) returns text[] language sql immutable parallel safe as $$
  select array(select jsonb_object_keys(paths))
$$;
create index plain_paths on plain using gin (plain_keys(paths));
