-- The place that a chat by job has in its session from the moment in which it was accepted. Exports have none, and so have chats
-- that were queued before this migration: these take a place when they begin.
alter table job add column session_id text collate "C", add column place bigint;
create index job_of_session on job (tenant, session_id, place) where status = 'in_progress';
