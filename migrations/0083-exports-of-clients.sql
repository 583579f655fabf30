-- An export belongs to the client that asked for it: clients that may read the history, and not the jobs, see their own exports.
-- Exports from before have no client, and only clients that may read all jobs see them.

alter table job add column client text collate "C";
create index job_of_client on job (tenant, client, id) where type = 'EXPORT';
