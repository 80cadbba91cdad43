import './styles/app.css';
import './island';
import './shell/theme';
import './shell/copy';
import './shell/keyboard';
import './shell/fragments';
import './shell/ages';
import './pages';
