import { stringifyJson } from '@annals/client/json';
import type { PathChange } from '../api/history-reads.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { LazyList } from '../components/lazy-list.tsx';
import { Text } from '../components/name.tsx';
import { ValueChange } from './value-change.tsx';

/** Paths with their two values, made as the reader comes to them. */
export function PathChanges({ paths }: { readonly paths: readonly (readonly [string, PathChange])[] }) {
  return (
    <div class="path-list">
      <LazyList
        items={paths}
        render={([path, change]) => (
          <section key={path} class="path-item">
            <header>
              <h2>
                <bdi>
                  <Text text={path === '' ? '(whole document)' : path} />
                </bdi>
              </h2>
              <CopyButton what={`the value of ${path}`} text={() => copied(change)} />
            </header>
            <ValueChange before={change.before} after={change.after} />
          </section>
        )}
      />
    </div>
  );
}

/** What it became; of a path that is gone, what it was. A string without its quotes. */
function copied({ before, after }: PathChange): string {
  const value = after ?? before ?? null;
  return typeof value === 'string' ? value : stringifyJson(value, 2);
}
