-- The period that contains this day, and what its calls have spent and reserved of a budget of this client, agent,
-- model or user, or of all: tokens, or else pico-USD.
create function budget_figures(of_tenant text, by text, name text, period text, in_tokens boolean, day integer)
returns table (first integer, last integer, spent numeric, held numeric) language plpgsql as $$
begin
  select d.first, d.last into first, last from budget_days(period, day) as d;
  spent := budget_spent(of_tenant, by, name, in_tokens, first, last);
  held := budget_held(of_tenant, by, name, in_tokens, first, last);
  return next;
end
$$;
