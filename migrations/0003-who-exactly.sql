-- Who exactly made a change: an actor is a name with an id and, where somebody acts for somebody else, the name and the
-- id of that person. An entry refers to all four by one number.
alter table change_actor
  add column actor_id text collate "C",
  add column behalf_name text collate "C",
  add column behalf_id text collate "C";

-- What belongs together: a request or a transaction. A UUID takes less room than its text, so one has its own column.
alter table change_entry
  add column correlation uuid,
  add column correlation_text text collate "C";
alter table change_entry
  alter column correlation set statistics 0, alter column correlation_text set statistics 0;

alter type change_input add attribute correlation uuid, add attribute correlation_text text;
-- of each actor; null where it has none
alter type change_batch
  add attribute actor_ids text[], add attribute behalf_names text[], add attribute behalf_ids text[];
