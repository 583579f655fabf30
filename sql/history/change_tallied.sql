-- How many entries of the tenant the tallies have after the second that a moment is in, or after the finest cell there is.
create function change_tallied(of_tenant text, moment bigint) returns bigint language plpgsql stable as $$
begin
  return (
    select coalesce(sum(t.upto[cardinality(t.upto)] - coalesce(t.upto[width_bucket(cell.child, t.children)], 0)), 0)
      from change_cells(moment) cell
      cross join lateral (
        select one.children, one.upto from change_tally one
          where one.tenant = of_tenant and one.level = cell.depth and one.bucket = cell.bucket and one.actor = 0 and one.kind = 0
          offset 0
      ) as t
  ) + (
    select coalesce(sum(t.upto[cardinality(t.upto)]), 0) from change_tally t
      where t.tenant = of_tenant and t.level = 0 and t.actor = 0 and t.kind = 0 and t.bucket > moment / 88473600000
  );
end
$$;
