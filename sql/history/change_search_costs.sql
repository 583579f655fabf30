-- Sets the planner's costs of a search of change_entry until the end of the transaction. It reads no table. The data
-- is mostly in memory: a page costs less than PostgreSQL's default, and a row more. So for a frequent path the index
-- of times is read too, which excludes rows outside of the window. With the costs of a disk, a path in a window of
-- half of the history took twice as many rows as match. To compile statements takes longer than to run them.
create function change_search_costs() returns void language plpgsql stable as $$
begin
  perform set_config('jit', 'off', true), set_config('seq_page_cost', '0.5', true),
          set_config('random_page_cost', '0.5', true), set_config('cpu_tuple_cost', '0.05', true);
end
$$;
