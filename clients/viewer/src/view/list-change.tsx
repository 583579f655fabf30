import type { JsonValue } from '@annals/client/json';
import { type ListSide, ListTable, type ObjectList } from '../../../../console/src/compare/list-table.tsx';
import { Text } from '../../../../console/src/components/text.tsx';
import { useLanguage } from './language-context.ts';
import { Value } from './value.tsx';

interface ListChangeProps {
  readonly entity: string;
  readonly path: string;
  readonly before: ObjectList;
  readonly after: ObjectList;
}

/** What happened to a list of objects, such as the items of an order, as a table. */
export function ListChange({ entity, path, before, after }: ListChangeProps) {
  const language = useLanguage();
  const { text, counted } = language;
  const label = language.field(entity, path);
  return (
    <li class="field" part="field">
      <bdi class="field-name" part="field-name">
        <Text text={label} />
      </bdi>
      <ListTable
        before={before}
        after={after}
        label={label}
        words={{
          added: text('listAdded'),
          removed: text('listRemoved'),
          changed: text('listChanged'),
          moved: text('listMoved'),
          change: text('listChange'),
          place: text('listPlace'),
          moreRows: (count) => counted('moreRows', count),
          sameRows: (count) => counted('sameRows', count),
          moreColumns: (count) => counted('moreColumns', count),
        }}
        heading={(name) => (
          <bdi>
            <Text text={language.member(entity, path, name)} />
          </bdi>
        )}
        cell={(value, name, side) => (
          <Cell entity={entity} path={`${path}.*.${written(name)}`} value={value} side={side} />
        )}
      />
    </li>
  );
}

/** A key as paths have it. */
function written(key: string): string {
  return key.replace(/[.\\]/g, '\\$&');
}

interface CellProps {
  readonly entity: string;
  readonly path: string;
  readonly value: JsonValue;
  readonly side: ListSide;
}

/** A value, or the members of a small object. */
function Cell({ entity, path, value, side }: CellProps) {
  const language = useLanguage();
  if (!(value instanceof Map) || value.size === 0)
    return <Value entity={entity} path={path} value={value} side={side} />;
  return (
    <>
      {[...value].map(([name, member]) => {
        const inner = `${path}.${written(name)}`;
        return (
          <div key={name}>
            <bdi>
              <Text text={`${language.field(entity, inner).split(' › ').at(-1)}: `} />
            </bdi>
            <Value entity={entity} path={inner} value={member} side={side} />
          </div>
        );
      })}
    </>
  );
}
