-- Jobs are handed out by their own row. docs/decisions/0015-jobs-go-round-the-tenants.md tells why.

-- `queued_at` is the order of a tenant's jobs. `held_until` is how long the worker that has the job counts as alive; null
-- where the job waits for a worker.
alter table job add column queued_at timestamptz not null default now();
alter table job add column held_until timestamptz;
create index job_waiting on job (tenant, type, queued_at, id) where status = 'in_progress' and held_until is null;
create index job_held on job (held_until) where status = 'in_progress' and held_until is not null;
drop index job_open;

-- The queue that handed them out before. Jobs that have not ended wait from now on, in their rows. The schema stays where
-- somebody else has queues in it.
do $$
begin
  if to_regclass('pgboss.queue') is not null then
    if not exists (select from pgboss.queue q where q.name not like 'annals.%' and q.name not like '\_\_pgboss\_\_%') then
      drop schema pgboss cascade;
    end if;
  end if;
end
$$;
