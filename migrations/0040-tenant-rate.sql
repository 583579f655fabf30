-- What is left of the requests that a tenant may send each second (ANNALS_TENANT_RATE), over all processes.
-- docs/decisions/0019-tenant-rate.md tells why it is laid out like this.

-- Nothing is lost where a crash empties it: a tenant without a row has its full rate. So it needs no WAL.
create unlogged table tenant_rate (
  tenant      text collate "C" primary key references tenant (tenant),
  tokens      double precision not null,
  refilled_at timestamptz not null
) with (fillfactor = 50);
