-- Adds new records to the totals of their days. Call it before reading totals, to include all finished calls. Takes the
-- lock on the tenant's quota.
create function call_sum_records(of_tenant text) returns void language plpgsql as $$
declare
  at_once constant integer := 5000;
  changes jsonb;
begin
  if not exists (select from call_record r where r.tenant = of_tenant and r.unsummed) then
    return;
  end if;
  insert into completion_quota (tenant) values (of_tenant) on conflict do nothing;
  perform from completion_quota q where q.tenant = of_tenant for update;
  loop
    with summed as (
      update call_record r set unsummed = false
        where r.tenant = of_tenant and r.unsummed
          and r.id in (select u.id from call_record u where u.tenant = of_tenant and u.unsummed
                         order by u.id limit at_once)
        returning r.at, r.client, r.maker, r.agent, r.model, r.provider, r.end_user, r.user_fixed,
                  r.input_tokens, r.output_tokens, r.cost
    )
    select jsonb_agg(call_change(1, s.at, s.client, s.maker, s.agent, s.model, s.provider, s.end_user,
                                 s.user_fixed, s.input_tokens, s.output_tokens, s.cost))
      into changes from summed s;
    exit when changes is null;
    perform call_sum_add(of_tenant, changes);
  end loop;
end
$$;
