-- The pages of the pending list stay in the index. With 1 MiB of them a directory of 12,000 documents took 183 bytes a document, with
-- 128 KiB it takes some 130, and to write a row takes as long. A cluster changes no index of distributed tables: shards of before keep theirs.
set local citus.enable_ddl_propagation = off;
alter index change_document_words set (gin_pending_list_limit = 128);
