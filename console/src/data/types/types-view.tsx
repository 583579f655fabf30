import type { CustomEntityType } from '@annals/client';
import { useState } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { allows } from '../../api/session.ts';
import { Button } from '../../components/buttons.tsx';
import { FormField } from '../../components/forms.tsx';
import { textFor } from '../../components/numbers.ts';
import { PageHeader } from '../../components/page.tsx';
import { EmptyState } from '../../components/states.tsx';
import { Name, Time } from '../../components/values.tsx';
import { FilterBar, HistoryLink, ListCard, SortHeading } from '../../lists/list-page.tsx';
import { useList } from '../../lists/use-list.ts';
import { Link, navigate } from '../../router/router.tsx';

/** The types of custom entities. One who may not list them writes the id of a type. */
export function TypesView() {
  return allows('schema.schema_read', 'schema.schema_manage') ? <TypeList /> : <WrittenType />;
}

function TypeList() {
  const list = useList({
    name: 'types',
    read: (parameters, signal) => annals().customEntities.list(parameters, { signal }),
  });
  const readsInstances = allows('schema.custominstance_read', 'schema.custominstance_manage');
  const add = allows('schema.schema_manage') ? (
    <Button kind="primary" icon="plus" onClick={() => navigate({ path: 'data/type/new' })}>
      New type
    </Button>
  ) : undefined;
  return (
    <>
      <PageHeader title="Custom entities" lead="Types of documents that you have made, and their instances.">
        {add}
      </PageHeader>
      <FilterBar filter={list.filter} onFilter={list.setFilter} example="name.en:Warranty*" />
      <ListCard
        list={list}
        one="type"
        empty={
          <EmptyState icon="data" title="There is no type yet">
            <p>A type describes documents that your application keeps in Annals. Their changes are in the history.</p>
            {add}
          </EmptyState>
        }
      >
        {(types) => (
          <table class="table">
            <thead>
              <tr>
                <SortHeading label="Type" field="_id" list={list} />
                <SortHeading label="Name" field="name.en" list={list} />
                <th scope="col">Schema</th>
                <SortHeading label="Changed" field="metadata.modifiedAt" list={list} />
                <th scope="col">See also</th>
              </tr>
            </thead>
            <tbody>
              {types.map((type) => (
                <tr key={type.id}>
                  <td class="mono">
                    <Link
                      class="row-link"
                      to={{ path: readsInstances ? 'data/type' : 'data/type/edit', parameters: { type: type.id } }}
                    >
                      <Name text={type.id} />
                    </Link>
                  </td>
                  <td>
                    <Name text={typeTitle(type)} />
                  </td>
                  <td>{type.jsonSchema === undefined ? <span class="muted">any JSON object</span> : 'JSON Schema'}</td>
                  <td class="nowrap">
                    <Time at={type.metadata.modifiedAt} detail="minute" />
                  </td>
                  <td>
                    <span class="link-list">
                      <Link to={{ path: 'data/type/edit', parameters: { type: type.id } }}>Definition</Link>
                      <HistoryLink entity="custom-entity" entityId={type.id} />
                    </span>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </ListCard>
    </>
  );
}

function WrittenType() {
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
        <FormField label="Type" hint="Write its id. Your client may read instances, but has no scope to list types.">
          {(control) => (
            <input {...control} class="mono" value={type} onInput={(event) => setType(event.currentTarget.value)} />
          )}
        </FormField>
        <div>
          <Button type="submit" kind="primary" disabled={type.trim() === ''}>
            Show its instances
          </Button>
        </div>
      </form>
    </>
  );
}

/** What a type is called. */
function typeTitle({ id, name }: Pick<CustomEntityType, 'id' | 'name'>): string {
  return textFor(name) ?? id;
}
