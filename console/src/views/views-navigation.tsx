import { useState } from 'preact/hooks';
import { allows, historyAbilities } from '../api/session.ts';
import { useRequest } from '../api/use-request.ts';
import { Icon } from '../components/icon.tsx';
import { later } from '../components/later.tsx';
import { Name } from '../components/name.tsx';
import { Link } from '../router/link.tsx';
import { place } from '../router/location.ts';
import { knownViews, readViews, targetOfView, writesViews } from './views.ts';
import './views.css';

const EditViews = later(async () => (await import('./edit-views.tsx')).EditViews);

/** The saved views of the tenant, below History in the navigation. */
export function ViewsNavigation({ onFollow }: { readonly onFollow: () => void }) {
  const [isEditing, setEditing] = useState(false);
  useRequest(allows(historyAbilities.all) ? 'views' : undefined, readViews);
  const views = knownViews.value ?? [];
  if (views.length === 0) return null;
  const { path, parameters } = place.value;
  const shown = path === 'history' ? parameters.get('view') : null;
  return (
    <div class="views-navigation">
      <ul aria-label="Saved views">
        {views.map(({ id, name }) => (
          <li key={id}>
            <Link
              to={targetOfView(id)}
              class="view-link"
              aria-current={id === shown ? 'true' : undefined}
              title={name}
              onFollow={onFollow}
            >
              <Name text={name} />
            </Link>
          </li>
        ))}
      </ul>
      {writesViews() ? (
        <button type="button" class="view-link views-edit" aria-haspopup="dialog" onClick={() => setEditing(true)}>
          <Icon name="edit" size={13} />
          Edit views
        </button>
      ) : undefined}
      {isEditing ? <EditViews onClose={() => setEditing(false)} /> : undefined}
    </div>
  );
}
