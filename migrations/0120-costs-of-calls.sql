-- What a call cost, in pico-USD (10^-12 US dollars), and the first day of the price that it was counted with. Null: nobody knows the cost.
alter table call_record add column cost numeric;
alter table call_record add column price_from text collate "C";
