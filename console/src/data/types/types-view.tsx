import { useState } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { allows } from '../../api/session.ts';
import { Button } from '../../components/buttons.tsx';
import { TextField } from '../../components/forms.tsx';
import { textFor } from '../../components/numbers.ts';
import { PageHeader } from '../../components/page.tsx';
import { Name } from '../../components/text.tsx';
import { Time } from '../../components/values.tsx';
import { HistoryLink, ListPage, useList } from '../../lists/list-page.tsx';
import { Link, navigate } from '../../router/router.tsx';

/** The types of custom entities. A session that may not list them enters the id of a type. */
export function TypesView() {
  return allows('schema.schema_read', 'schema.schema_manage') ? <TypeList /> : <TypeById />;
}

function TypeList() {
  const list = useList({
    name: 'types',
    read: (parameters, signal) => annals().customEntities.list(parameters, { signal }),
  });
  const readsInstances = allows('schema.custominstance_read', 'schema.custominstance_manage');
  return (
    <ListPage
      list={list}
      title="Custom entities"
      lead="Types of documents that you have created, and their instances."
      example="name.en:Warranty*"
      noun="type"
      empty={{
        icon: 'data',
        title: 'There is no type yet',
        text: 'A type describes documents that your application keeps in Annals. Their changes are in the history.',
      }}
      add={
        allows('schema.schema_manage') ? (
          <Button kind="primary" icon="plus" onClick={() => navigate({ path: 'data/type/new' })}>
            New type
          </Button>
        ) : undefined
      }
      keyOf={({ id }) => id}
      columns={[
        {
          label: 'Type',
          sort: '_id',
          class: 'mono',
          cell: ({ id }) => (
            <Link
              class="row-link"
              to={{ path: readsInstances ? 'data/type' : 'data/type/edit', parameters: { type: id } }}
            >
              <Name text={id} />
            </Link>
          ),
        },
        { label: 'Name', sort: 'name.en', cell: ({ id, name }) => <Name text={textFor(name) ?? id} /> },
        {
          label: 'Schema',
          cell: ({ jsonSchema }) =>
            jsonSchema === undefined ? <span class="muted">any JSON object</span> : 'JSON Schema',
        },
        {
          label: 'Changed',
          sort: 'metadata.modifiedAt',
          class: 'nowrap',
          cell: ({ metadata }) => <Time at={metadata.modifiedAt} detail="minute" />,
        },
        {
          label: 'See also',
          cell: ({ id }) => (
            <span class="link-list">
              <Link to={{ path: 'data/type/edit', parameters: { type: id } }}>Definition</Link>
              <HistoryLink entity="custom-entity" entityId={id} />
            </span>
          ),
        },
      ]}
    />
  );
}

function TypeById() {
  const [type, setType] = useState('');
  return (
    <>
      <PageHeader title="Custom entities" />
      <form
        class="card card-body written-type"
        onSubmit={(event) => {
          event.preventDefault();
          navigate({ path: 'data/type', parameters: { type: type.trim() } });
        }}
      >
        <TextField
          kind="code"
          label="Type"
          hint="Write its id. Your client may read instances, but has no scope to list types."
          value={type}
          onText={setType}
        />
        <div>
          <Button type="submit" kind="primary" disabled={type.trim() === ''}>
            Show its instances
          </Button>
        </div>
      </form>
    </>
  );
}
