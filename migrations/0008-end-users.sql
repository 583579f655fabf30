-- End users as subjects of budgets: only a key can make sure of the user of its calls.
alter table access_key
  -- the user of all its calls; null: whoever they name
  add column end_user text collate "C";

-- whether its key fixes the end user; null: no
alter table call_record add column user_fixed boolean;

-- The user, of a budget of each user; otherwise ''.
alter table budget_alert add column name text collate "C" not null default '';
alter table budget_alert drop constraint budget_alert_pkey;
alter table budget_alert add constraint budget_alert_pkey primary key (tenant, budget, first, threshold, name);
