import { ApiError } from '@annals/client';
import { JsonNumber, type JsonObject, type JsonValue, stringifyJson } from '@annals/client/json';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { allows } from '../../api/session.ts';
import { Button } from '../../components/buttons.tsx';
import { Name } from '../../components/text.tsx';
import { Time } from '../../components/values.tsx';
import { ListPage, useList } from '../../lists/list-page.tsx';
import { Link, parametersWith, place, setParameters } from '../../router/router.tsx';
import { InstancePanel } from './instance-panel.tsx';
import { columnsOf, type InstanceField, instanceTitle, memberText } from './schema-view.ts';

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
    read: (query, signal) => annals().exact.instances(type).list(query, { signal }),
  });
  const fields = columnsOf(schema, list.page.value?.items ?? []);
  const close = () => setParameters({ item: undefined, edit: undefined });
  return (
    <ListPage
      list={list}
      title={
        title === undefined ? (
          <Name text={type} />
        ) : (
          <>
            <Name text={title} /> <Name class="muted" text={type} />
          </>
        )
      }
      lead={<Link to={{ path: 'data/types' }}>All types</Link>}
      example={exampleOf(fields)}
      choices={fields
        .filter(({ isField, choices }) => isField && choices.length > 0)
        .map(({ key, choices }) => ({ field: key, values: choices }))}
      noun="instance"
      empty={{
        icon: 'data',
        title: 'This type has no instances',
        text: 'Your application creates instances over the API, or you create one here.',
      }}
      add={
        allows('schema.custominstance_manage') ? (
          <Button kind="primary" icon="plus" onClick={() => setParameters({ item: undefined, edit: 'new' })}>
            New instance
          </Button>
        ) : undefined
      }
      class="instance-table"
      keyOf={idOf}
      isOpen={(instance) => open === idOf(instance)}
      columns={[
        { label: 'Id', sort: '_id', cell: (instance) => <InstanceName instance={instance} /> },
        ...fields.map(({ key, isField }) => ({
          label: <Name text={key} />,
          sort: isField ? key : undefined,
          cell: (instance: JsonObject) => <Cell value={instance.get(key)} />,
        })),
        {
          label: 'Changed',
          sort: 'metadata.modifiedAt',
          class: 'nowrap',
          cell: (instance) => <Time at={modifiedAt(instance)} detail="minute" />,
        },
      ]}
    >
      {open !== undefined || parameters.get('edit') === 'new' ? (
        <InstancePanel
          key={`${type} ${open ?? ''}`}
          type={type}
          id={open}
          schema={schema}
          onClose={close}
          onChanged={list.reload}
        />
      ) : undefined}
    </ListPage>
  );
}

const idOf = (instance: JsonObject) => memberText(instance, 'id');

function InstanceName({ instance }: { readonly instance: JsonObject }) {
  const id = idOf(instance);
  const title = instanceTitle(instance);
  return (
    <>
      <Link class="row-link" to={{ path: 'data/type', parameters: parametersWith({ item: id, edit: undefined }) }}>
        <Name text={id} />
      </Link>
      {title === undefined ? undefined : <Name as="div" class="muted cell-cut" text={title} />}
    </>
  );
}

/** Characters of a value in a table. */
const maxCell = 80;

function Cell({ value }: { readonly value: JsonValue | undefined }) {
  if (value === undefined) return <span class="muted">–</span>;
  if (typeof value === 'string') {
    return <Name class="cell-cut" text={value.slice(0, maxCell)} />;
  }
  return (
    <span class={`cell-cut ${value instanceof JsonNumber ? 'number' : 'mono'}`}>
      <Name text={stringifyJson(value).slice(0, maxCell)} />
    </span>
  );
}

/**
 * A type as it is defined: its name and its schema. A client without a scope for types sees the instances without them.
 */
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

function exampleOf(columns: readonly InstanceField[]): string {
  const field = columns.find(({ isField }) => isField);
  return field === undefined ? 'name.en:Aisle*' : `${field.key}:${field.choices[0] ?? 'value'} metadata.version:>1`;
}
