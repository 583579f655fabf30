-- Whether a call counts towards a budget of this client, agent, model or user, or of all. `call`: the start of its
-- record.
create function budget_counts(by text, name text, call jsonb) returns boolean language sql immutable as $$
  select case by when 'all' then true
                 when 'client' then name in (call ->> 'client', call ->> 'maker')
                 when 'user' then name = call ->> 'end_user'
                 else name = call ->> by end
$$;
