import type { JsonValue } from '@annals/client/json';
import { useInSlices } from '../api/use-in-slices.ts';
import { leavesOf } from '../compare/compare-documents.ts';
import { JsonScalar } from '../components/json-tree.tsx';
import { LazyList } from '../components/lazy-list.tsx';
import { Skeleton } from '../components/loading.tsx';
import { Name, Text } from '../components/name.tsx';
import { TableScroll } from '../components/table-scroll.tsx';
import { Time } from '../components/time.tsx';
import { lastTouches } from './last-touches.ts';
import type { DocumentLife } from './read-life.ts';

interface FieldsTableProps {
  readonly document: JsonValue;
  readonly life: DocumentLife;
  /** The change after which the document is shown. */
  readonly change: number;
  readonly onShow: (change: number) => void;
}

/** Each field of a document with who touched it last. */
export function FieldsTable({ document, life, change, onShow }: FieldsTableProps) {
  const leaves = useInSlices(() => leavesOf(document), [document]).value;
  const touchOf = useInSlices(
    () => lastTouches(life.changes.filter(({ number }) => number <= change)),
    [life, change],
  ).value;
  if (leaves === undefined || touchOf === undefined) return <Skeleton />;
  return (
    <TableScroll label="Fields of the document">
      <table class="table wraps fields-table">
        <thead>
          <tr>
            <th>Field</th>
            <th>Value</th>
            <th>Last touched</th>
            <th>By</th>
          </tr>
        </thead>
        <tbody>
          <LazyList
            items={leaves}
            rest={(button) => (
              <tr>
                <td colSpan={4}>{button}</td>
              </tr>
            )}
            render={([path, value]) => {
              const touch = touchOf(path);
              return (
                <tr key={path}>
                  <td class="mono">
                    <bdi>
                      <Text text={path === '' ? '(whole document)' : path} />
                    </bdi>
                  </td>
                  <td class="mono">
                    <JsonScalar value={value} />
                  </td>
                  {touch === undefined ? (
                    <td class="muted" colSpan={2}>
                      before the history begins
                    </td>
                  ) : (
                    <>
                      <td>
                        <button type="button" class="text-button" onClick={() => onShow(touch.number)}>
                          <Time at={touch.entry.at} />
                        </button>
                      </td>
                      <td>
                        <Name text={touch.entry.actor} />
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
