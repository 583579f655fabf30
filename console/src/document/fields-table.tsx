import type { JsonValue } from '@annals/client/json';
import { Fragment } from 'preact';
import type { Entry } from '../api/history-reads.ts';
import { useInSlices } from '../api/requests.ts';
import { leavesOf } from '../compare/compare-documents.ts';
import { JsonScalar } from '../components/json-tree.tsx';
import { LazyList } from '../components/lazy-list.tsx';
import { countText } from '../components/numbers.ts';
import { Skeleton } from '../components/states.tsx';
import { TableScroll } from '../components/table.tsx';
import { Text } from '../components/text.tsx';
import { Time } from '../components/values.tsx';
import { type DocumentKey, queryOfDocumentField } from '../history/document-queries.ts';
import { historyOf } from '../history/history-view.ts';
import { Person } from '../history/who.tsx';
import { personOf } from '../history/who-queries.ts';
import { Link } from '../router/router.tsx';
import type { DocumentLife } from './timeline.tsx';
import { touchesOfPaths } from './touches-of-paths.ts';

interface FieldsTableProps {
  readonly of: DocumentKey;
  readonly document: JsonValue;
  readonly life: DocumentLife;
  /** The change after which the document is shown. */
  readonly change: number;
  readonly onShow: (change: number) => void;
}

/** Each field of a document with who touched it last, and who ever did. */
export function FieldsTable({ of, document, life, change, onShow }: FieldsTableProps) {
  const leaves = useInSlices(() => leavesOf(document), [document]).value;
  const touchesOf = useInSlices(
    () => touchesOfPaths(life.changes.filter(({ number }) => number <= change)),
    [life, change],
  ).value;
  if (leaves === undefined || touchesOf === undefined) return <Skeleton />;
  return (
    <TableScroll label="Fields of the document">
      <table class="table wraps fields-table">
        <thead>
          <tr>
            <th>Field</th>
            <th>Value</th>
            <th>Last touched</th>
            <th>By</th>
            <th>Ever by</th>
          </tr>
        </thead>
        <tbody>
          <LazyList
            items={leaves}
            rest={(button) => (
              <tr>
                <td colSpan={5}>{button}</td>
              </tr>
            )}
            render={([path, value]) => {
              const touches = touchesOf(path);
              return (
                <tr key={path}>
                  <td class="mono">
                    <Link
                      to={historyOf(queryOfDocumentField({ ...of, path }))}
                      title="All changes of this field of this document"
                    >
                      <bdi>
                        <Text text={path === '' ? '(whole document)' : path} />
                      </bdi>
                    </Link>
                  </td>
                  <td class="mono">
                    <JsonScalar value={value} />
                  </td>
                  {touches === undefined ? (
                    <td class="muted" colSpan={3}>
                      before the history begins
                    </td>
                  ) : (
                    <>
                      <td>
                        <button type="button" class="text-button" onClick={() => onShow(touches.last.number)}>
                          <Time at={touches.last.entry.at} />
                        </button>
                      </td>
                      <td>
                        <Actor of={touches.last.entry} />
                      </td>
                      <td>
                        <Actors all={touches.actors} />
                      </td>
                    </>
                  )}
                </tr>
              );
            }}
          />
        </tbody>
      </table>
    </TableScroll>
  );
}

/** Actors that a cell names. */
const maxNamed = 3;

type Named = Pick<Entry, 'actor' | 'actorId'>;

function Actors({ all }: { readonly all: readonly Named[] }) {
  const more = all.length - maxNamed;
  return (
    <>
      {all.slice(0, maxNamed).map((actor, index) => (
        <Fragment key={index}>
          {index === 0 ? undefined : ', '}
          <Actor of={actor} />
        </Fragment>
      ))}
      {more > 0 ? <span class="muted"> and {countText(more)} more</span> : undefined}
    </>
  );
}

function Actor({ of: { actor, actorId } }: { readonly of: Named }) {
  if (actor === undefined) return null;
  return (
    <Link to={personOf({ actor, actorId })}>
      <Person name={actor} id={actorId} />
    </Link>
  );
}
