-- Up to which size the witnesses have signed a log, and when they are asked again.
alter table proof_log add column cosigned bigint not null default 0, add column cosign_after timestamptz;
