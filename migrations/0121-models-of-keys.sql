-- The models that a key may call, as provider/model; null: all that the tenant may.
alter table access_key add column models text[];
