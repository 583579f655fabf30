-- A record was the one row of a call that locked its tenant's row. call_record_write looks for the tenant, and who deletes a tenant waits for
-- the transactions that have still seen it, and deletes what they wrote.
alter table call_record drop constraint call_record_tenant_fkey;
