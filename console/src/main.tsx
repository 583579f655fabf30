import { render } from 'preact';
import { App } from './app/app.tsx';
import '../../docs/site/tokens.css';
import './design/base.css';
import './components/layout.css';
import './components/forms.css';
import './components/buttons.css';
import './components/tables.css';
import './components/states.css';
import './components/values.css';
import './components/overlays.css';

const root = document.getElementById('app');
if (root !== null) render(<App />, root);
