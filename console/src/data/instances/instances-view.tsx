import { ApiError } from '@annals/client';
import { JsonNumber, type JsonObject, type JsonValue, stringifyJson } from '@annals/client/json';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { allows } from '../../api/session.ts';
import { Button } from '../../components/buttons.tsx';
import { PageHeader } from '../../components/page.tsx';
import { EmptyState } from '../../components/states.tsx';
import { Name, Time } from '../../components/values.tsx';
import { FieldChoice, FilterBar, ListCard, SortHeading } from '../../lists/list-page.tsx';
import { type List, useList } from '../../lists/use-list.ts';
import { Link, parametersWith, place, setParameters } from '../../router/router.tsx';
import { InstancePanel } from './instance-panel.tsx';
import { type Column, columnsOf, instanceTitle, memberText } from './schema-view.ts';

/** The instances of a type: a table with filter, order and pages, and one of them at the side. */
export function InstancesView() {
  const { parameters } = place.value;
  const type = parameters.get('type') ?? '';
  const open = parameters.get('item') ?? undefined;
  const definition = useRequest(`definition ${type}`, (signal) => readDefinition(type, signal));
  const known = definition.isCurrent ? definition.value : undefined;
  const jsonSchema = known?.get('jsonSchema');
  const schema = jsonSchema instanceof Map ? jsonSchema : undefined;
  const title = known === undefined ? undefined : instanceTitle(known);
  const list = useList({
    name: `instances ${type}`,
    read: (wanted, signal) => annals().exact.instances(type).list(wanted, { signal }),
  });
  const columns = columnsOf(schema, list.page.value?.items ?? []);
  const add = allows('schema.custominstance_manage') ? (
    <Button kind="primary" icon="plus" onClick={() => setParameters({ item: undefined, edit: 'new' })}>
      New instance
    </Button>
  ) : undefined;
  const close = () => setParameters({ item: undefined, edit: undefined });
  const isPanelOpen = open !== undefined || parameters.get('edit') === 'new';
  return (
    <>
      <PageHeader
        title={
          title === undefined ? (
            <Name text={type} />
          ) : (
            <>
              <Name text={title} />{' '}
              <span class="muted">
                <Name text={type} />
              </span>
            </>
          )
        }
        lead={<Link to={{ path: 'data/types' }}>All types</Link>}
      >
        {add}
      </PageHeader>
      <FilterBar filter={list.filter} onFilter={list.setFilter} example={exampleOf(columns)}>
        {columns.flatMap(({ key, isField, choices }) =>
          isField && choices.length > 0
            ? [<FieldChoice key={key} field={key} choices={choices} filter={list.filter} onFilter={list.setFilter} />]
            : [],
        )}
      </FilterBar>
      <ListCard
        list={list}
        one="instance"
        empty={
          <EmptyState icon="data" title="This type has no instances">
            <p>Your application makes instances over the API, or you make one here.</p>
            {add}
          </EmptyState>
        }
      >
        {(items) => <InstanceTable items={items} columns={columns} list={list} open={open} />}
      </ListCard>
      {isPanelOpen ? (
        <InstancePanel
          key={`${type} ${open ?? ''}`}
          type={type}
          id={open}
          schema={schema}
          onClose={close}
          onChanged={list.reload}
        />
      ) : undefined}
    </>
  );
}

interface InstanceTableProps {
  readonly items: readonly JsonObject[];
  readonly columns: readonly Column[];
  readonly list: List<JsonObject>;
  readonly open: string | undefined;
}

function InstanceTable({ items, columns, list, open }: InstanceTableProps) {
  return (
    <table class="table instance-table">
      <thead>
        <tr>
          <SortHeading label="Id" field="_id" list={list} />
          {columns.map(({ key, isField }) =>
            isField ? (
              <SortHeading key={key} label={key} field={key} list={list} />
            ) : (
              <th key={key} scope="col">
                <Name text={key} />
              </th>
            ),
          )}
          <SortHeading label="Changed" field="metadata.modifiedAt" list={list} />
        </tr>
      </thead>
      <tbody>
        {items.map((instance) => {
          const id = memberText(instance, 'id');
          const title = instanceTitle(instance);
          return (
            <tr key={id} class={open === id ? 'selected' : undefined}>
              <td>
                <Link
                  class="row-link"
                  to={{ path: 'data/type', parameters: parametersWith({ item: id, edit: undefined }) }}
                >
                  <Name text={id} />
                </Link>
                {title === undefined ? undefined : (
                  <div class="muted cell-cut">
                    <Name text={title} />
                  </div>
                )}
              </td>
              {columns.map(({ key }) => (
                <td key={key}>
                  <Cell value={instance.get(key)} />
                </td>
              ))}
              <td class="nowrap">
                <Time at={modifiedAt(instance)} detail="minute" />
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

/** Characters of a value in a table. */
const maxCell = 80;

function Cell({ value }: { readonly value: JsonValue | undefined }) {
  if (value === undefined) return <span class="muted">–</span>;
  if (typeof value === 'string') {
    return (
      <span class="cell-cut">
        <Name text={value.slice(0, maxCell)} />
      </span>
    );
  }
  return (
    <span class={`cell-cut ${value instanceof JsonNumber ? 'number' : 'mono'}`}>
      <Name text={stringifyJson(value).slice(0, maxCell)} />
    </span>
  );
}

/** A type as it is defined: its name and its schema. A client without a scope for types sees the instances without them. */
async function readDefinition(type: string, signal: AbortSignal): Promise<JsonObject | undefined> {
  if (!allows('schema.schema_read', 'schema.schema_manage')) return undefined;
  try {
    return await annals().exact.customEntities.get(type, { signal });
  } catch (error) {
    // The list says that there is no such type.
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

function modifiedAt(instance: JsonObject): string {
  const metadata = instance.get('metadata');
  return metadata instanceof Map ? memberText(metadata, 'modifiedAt') : '';
}

function exampleOf(columns: readonly Column[]): string {
  const field = columns.find(({ isField }) => isField);
  return field === undefined ? 'name.en:Aisle*' : `${field.key}:${field.choices[0] ?? 'value'} metadata.version:>1`;
}
