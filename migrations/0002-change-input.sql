-- A change as record_entries takes it.
create type change_input as (
  at bigint,
  -- the places of its kind and actor in change_batch, from 1
  kind integer,
  actor integer,
  document uuid,
  identity uuid,
  path_numbers integer[],
  entity_id text,
  name text,
  schema_version text,
  related text,
  paths text,
  marks text,
  context text
);

-- What the changes of a batch share.
create type change_batch as (
  kind_lookups uuid[],
  kind_entities text[],
  kind_types text[],
  -- JSON arrays
  kind_related_entities text[],
  actor_lookups uuid[],
  actor_names text[],
  path_numbers integer[],
  path_entities text[],
  path_names text[],
  -- the number of paths without a number of their own
  path_rest integer,
  -- distinct related items: the places of their entries, and theirs within these
  related_of integer[],
  related_items integer[],
  related_documents uuid[],
  related_entities text[],
  related_ids text[],
  way text,
  recorder_lookup uuid,
  recorder_name text,
  recorder_issuer text,
  recorder_subject text
);
