-- Deletes the records of these calls before they are replaced. Returns the subtractions from the totals in the format
-- of call_sum_add; null if there are none.
create function call_record_take(of_tenant text, ids text[]) returns jsonb language plpgsql as $$
declare
  taken jsonb;
begin
  if ids is null then
    return null;
  end if;
  with deleted as (
    delete from call_record r where r.tenant = of_tenant and r.id = any (ids)
      returning r.at, r.client, r.maker, r.agent, r.model, r.provider, r.end_user, r.user_fixed,
                r.input_tokens, r.output_tokens, r.cost, r.unsummed
  )
  select jsonb_agg(call_change(-1, d.at, d.client, d.maker, d.agent, d.model, d.provider, d.end_user,
                               d.user_fixed, d.input_tokens, d.output_tokens, d.cost))
    into taken from deleted d where not d.unsummed;
  return taken;
end
$$;
