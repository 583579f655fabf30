-- The instances whose name is a map by language. A term on the name looks into each language, which no index of values answers; this one
-- leads to the few or many instances that have to be read for it. It is made here and not after the start: an index made beside others
-- (create index concurrently) waits for them, and they for it.
create index if not exists custom_instance_map_name on custom_instance (tenant, type)
  where jsonb_typeof(fields -> 'name') = 'object';
