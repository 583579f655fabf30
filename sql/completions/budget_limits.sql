-- Whether a budget can refuse a call. Those of users refuse only calls of keys that fix the user: other programs could
-- name any other user. 'each user': a budget for each.
create function budget_limits(by text, name text, call jsonb) returns boolean language sql immutable as $$
  select case when by in ('user', 'each user')
                then coalesce((call ->> 'user_fixed')::boolean, false)
                  and (by = 'each user' or name = call ->> 'end_user')
              else budget_counts(by, name, call) end
$$;
