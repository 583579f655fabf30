-- Whether the sums of calls do not have this record yet. A call writes its record alone; sums are added for many records together.
alter table call_record add column unsummed boolean not null default false;
create index call_record_unsummed on call_record (tenant, id) where unsummed;
