import { historyScopes } from '../api/session.ts';
import { TabbedViews, type View } from '../components/page.tsx';
import { later } from '../components/states.tsx';
import { ConfigurationView } from './configuration/configuration-view.tsx';
import { JobsView } from './jobs/jobs-view.tsx';
import { TypesView } from './types/types-view.tsx';
import './data.css';

// Rarely the first view of a session.
const InstancesView = later(async () => (await import('./instances/instances-view.tsx')).InstancesView);
const TypeEditor = later(async () => (await import('./types/type-editor.tsx')).TypeEditor);

const types = ['schema.schema_read', 'schema.schema_manage'];
const instances = ['schema.custominstance_read', 'schema.custominstance_manage'];
export const dataViews: readonly View[] = [
  { path: 'data/types', tab: 'Custom entities', scopes: [...types, ...instances], Content: TypesView },
  { path: 'data/type', below: 'data/types', scopes: instances, Content: InstancesView },
  { path: 'data/type/edit', below: 'data/types', scopes: types, Content: TypeEditor },
  { path: 'data/type/new', below: 'data/types', scopes: ['schema.schema_manage'], Content: TypeEditor },
  {
    path: 'data/configuration',
    tab: 'Configuration',
    scopes: ['configuration.configuration_view', 'configuration.configuration_manage'],
    Content: ConfigurationView,
  },
  { path: 'data/jobs', tab: 'Jobs', scopes: ['ai.agent_read', 'ai.agent_manage', ...historyScopes], Content: JobsView },
];

/** Custom entities, configuration and jobs: what the tenant keeps in the service apart from its history. */
export function DataPage() {
  return <TabbedViews root="data" label="Data" views={dataViews} />;
}
