-- A request has one log, whoever writes it: the process that ran the request, one that took its job up again, or one that
-- found it left by a dead process. Null in turns from before this migration.
alter table agent_turn add column log_id text collate "C";
