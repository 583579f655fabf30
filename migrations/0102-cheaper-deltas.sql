-- The arrays of a delta live until the next fold: to compress them took more time than to write them. A cluster changes no
-- storage of distributed tables: there, shards of before keep theirs.
set local citus.enable_ddl_propagation = off;
alter table change_delta alter column ats set storage external, alter column sequences set storage external,
  alter column kinds set storage external, alter column actors set storage external,
  alter column documents set storage external, alter column names set storage external;
