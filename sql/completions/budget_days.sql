-- The first and last day of the period that contains this day.
create function budget_days(period text, day integer, out first integer, out last integer) language sql immutable as $$
  select case period when 'day' then day
                     when 'month' then date_trunc('month', date '1970-01-01' + day)::date - date '1970-01-01'
                     else 0 end,
         case period when 'day' then day
                     when 'month' then (date_trunc('month', date '1970-01-01' + day) + interval '1 month')::date
                                       - date '1970-01-01' - 1
                     else 2147483647 end
$$;
