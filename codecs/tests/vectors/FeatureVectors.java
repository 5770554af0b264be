import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;

/** Writes Kafka's table of levels: java -cp 'JARS/*' FeatureVectors.java. Tab separated. */
public class FeatureVectors {
    public static void main(String[] args) {
        MetadataVersion before = null;
        for (MetadataVersion mv : MetadataVersion.VERSIONS) {
            String changed = before == null ? "-" : String.valueOf(MetadataVersion.checkIfMetadataChanged(mv, before));
            before = mv;
            System.out.println("level\t" + mv.featureLevel() + "\t" + mv.version() + "\t" + mv.shortVersion() + "\t"
                + mv.isProduction() + "\t" + changed + "\t" + mv.registerBrokerRecordVersion() + "\t"
                + mv.partitionRecordVersion() + "\t" + mv.partitionChangeRecordVersion() + "\t"
                + (mv.isControllerRegistrationSupported() ? mv.registerControllerRecordVersion() : -1) + "\t"
                + mv.isScramSupported() + "\t" + mv.isMetadataTransactionSupported() + "\t"
                + mv.isDelegationTokenSupported() + "\t" + mv.isDirectoryAssignmentSupported() + "\t"
                + mv.isElrSupported() + "\t" + mv.isCordonedLogDirsSupported() + "\t"
                + mv.isCidrAclSupported() + "\t" + mv.isControllerUnregistrationSupported());
            for (Feature feature : Feature.PRODUCTION_FEATURES) {
                System.out.println("default\t" + mv.featureLevel() + "\t" + feature.featureName() + "\t" + feature.defaultLevel(mv));
            }
        }
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            System.out.println("feature\t" + feature.featureName() + "\t" + feature.minimumProduction() + "\t"
                + feature.latestProduction() + "\t" + feature.latestTesting());
            for (var level : feature.featureVersions()) {
                System.out.println("depends\t" + feature.featureName() + "\t" + level.featureLevel() + "\t" + new TreeMap<>(level.dependencies()));
            }
        }
        System.out.println("latest\t" + MetadataVersion.latestProduction().featureLevel() + "\t" + MetadataVersion.LATEST_PRODUCTION.featureLevel() + "\t" + MetadataVersion.latestTesting().featureLevel() + "\t" + MetadataVersion.MINIMUM_VERSION.featureLevel());
    }
}
