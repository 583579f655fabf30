-- Jobs, the files of exports, and e-mails that wait. docs/decisions/0008-jobs-and-mail.md tells why it is laid out like
-- this. What hands jobs to workers (pg-boss) keeps its own schema, `pgboss`; these tables are the truth.

-- `document` is the job as clients see it, as JSON text, and `fields` the same as jsonb for filters and sorting. `input`
-- is what its worker needs, as JSON text. Each worker that takes the job up counts `attempt` up, and what it writes
-- then counts only while that is still the number.
create table job (
  tenant        text collate "C" not null references tenant (tenant),
  id            text collate "C" not null,
  type          text collate "C" not null check (type in ('AGENT_CHAT', 'EXPORT')),
  status        text collate "C" not null check (status in ('in_progress', 'success', 'failure', 'skipped')),
  document      text collate "C" not null,
  fields        jsonb not null,
  input         text collate "C" not null,
  attempt       integer not null default 0,
  -- how often it was taken up since it last got on
  stalled       integer not null default 0,
  -- a call to a vendor may have left, so it is not made again
  call_began    boolean not null default false,
  -- how far an export has come: which entries it is made of, and the last one that is in its file
  snapshot      pg_snapshot,
  since         bigint,
  last_at       bigint,
  last_sequence bigint,
  primary key (tenant, id)
) with (fillfactor = 70);
create index job_open on job (tenant, id) where status = 'in_progress';

-- The file of an export in pieces of some 1 MiB, each packed (zstd) on its own; `bytes` is what it unpacks to.
create table job_chunk (
  tenant  text collate "C" not null,
  job     text collate "C" not null,
  chunk   integer not null,
  bytes   bigint not null,
  content bytea not null,
  primary key (tenant, job, chunk),
  foreign key (tenant, job) references job (tenant, id) on delete cascade
);
alter table job_chunk alter column content set storage external;

-- Which transaction recorded an entry, so that an export that was cut off goes on in the snapshot it began with. Entries
-- from before this migration have none: they are in every snapshot. Two statements, so that no row is rewritten.
alter table change_entry add column recorded xid8;
alter table change_entry alter column recorded set default pg_current_xact_id();

-- Takes lines from an open cursor (line, at, sequence) until they have `most` bytes together: one answer has one piece of
-- the file, whether its lines have a hundred bytes or a hundred million. No row: the cursor has come to its end.
create function change_export_take(source refcursor, most bigint,
                                   out lines text, out entries integer, out last_at bigint, out last_sequence bigint)
returns setof record language plpgsql as $$
declare
  line text;
  line_at bigint;
  line_sequence bigint;
  parts text[] := '{}';
  size bigint := 0;
begin
  entries := 0;
  while size < most loop
    fetch source into line, line_at, line_sequence;
    exit when not found;
    parts := array_append(parts, line);
    size := size + octet_length(line);
    entries := entries + 1;
    last_at := line_at;
    last_sequence := line_sequence;
  end loop;
  if entries > 0 then
    lines := array_to_string(parts, '');
    return next;
  end if;
end
$$;

-- A field of a CSV file (RFC 4180), always quoted. A spreadsheet would run what begins like a formula; with an
-- apostrophe before it, it is text.
create function csv_field(value text) returns text language sql immutable parallel safe as $$
  -- = + - @, tab, line feed, carriage return, and the wide forms of the first four
  select case when ascii(value) in (61, 43, 45, 64, 9, 10, 13, 65309, 65291, 65293, 65312) then '"''' else '"' end
    || replace(value, '"', '""') || '"'
$$;

-- E-mails, each sent once. `message_id` is the Message-ID, so that a repeat can be told.
create table mail (
  tenant     text collate "C" not null references tenant (tenant),
  message_id text collate "C" not null,
  recipient  text collate "C" not null,
  subject    text collate "C" not null,
  content    text collate "C" not null,
  queued_at  timestamptz not null default now(),
  attempts   integer not null default 0,
  due_at     timestamptz not null default now(),
  sent_at    timestamptz,
  primary key (tenant, message_id)
);
create index mail_waiting on mail (due_at) where sent_at is null;
