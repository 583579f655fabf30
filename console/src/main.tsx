import { render } from 'preact';
import { App } from './app/app.tsx';
import './design/tokens.css';
import './design/base.css';
import './components/components.css';

const root = document.getElementById('app');
if (root !== null) render(<App />, root);
