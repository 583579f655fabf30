import { useRequest } from '../api/requests.ts';
import { Icon } from '../components/icon.tsx';
import { Skeleton } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { Link } from '../router/router.tsx';
import { Hint, useFindEverything } from './find-everything.tsx';
import './find.css';

/** What some words find, in the page: each a link. */
export function FoundWords({ text }: { readonly text: string }) {
  const find = useFindEverything();
  const { value, isLoading } = useRequest(text, (signal) => find(text, signal));
  if (value === undefined) return isLoading ? <Skeleton lines={4} /> : null;
  if (value.every(({ items }) => items.length === 0)) return <p class="muted">Nothing begins with these words.</p>;
  return (
    <div class="found-words">
      {value.map(({ source, items }) =>
        items.length === 0 ? undefined : (
          <section key={source.title}>
            <h2 class="find-title">{source.title}</h2>
            <ul>
              {items.map((item) => (
                <li key={item.key}>
                  <Link to={item.to} class="find-item">
                    <Icon name={source.icon} />
                    <Name class="find-label" text={item.label} />
                    <Hint text={item.hint} />
                  </Link>
                </li>
              ))}
            </ul>
          </section>
        ),
      )}
    </div>
  );
}
