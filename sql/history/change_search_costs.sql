-- Tells the planner, until the end of the transaction, what a search of change_entry costs. In and out: nothing. It
-- reads no table.
-- What is searched is mostly in memory: a page costs less than PostgreSQL thinks, and a row in it more. So where a path
-- is frequent, the index of times is read too, and rows outside of the window are not reached. With the costs of a
-- disk they were: of a path in a window of half of the history, twice as many rows as match.
-- To compile statements takes longer than to run them.
create function change_search_costs() returns void language plpgsql stable as $$
begin
  perform set_config('jit', 'off', true), set_config('seq_page_cost', '0.5', true),
          set_config('random_page_cost', '0.5', true), set_config('cpu_tuple_cost', '0.05', true);
end
$$;
